"""What was found, for people and for programs: text, HTML, JSON, JUnit and SARIF. Each file or folder makes one."""
