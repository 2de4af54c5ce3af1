"""The verdict as one HTML page: everything inside, no script, safe whatever the packets held.

model.py     what stands on the page, as dataclasses
sentences.py verdicts in words
rules.py     broken rules and the table of all
measures.py  timing, fan-out and quality of the capture as tables and pictures
diagrams.py  the frames around findings
pictures.py  figures as pictures inside the page
page.py      all of it together: `html_page`
page.html.j2, page.css
"""
