"""Grades of a class for people, spreadsheets and programs. Each file makes one of them; they share ``cells``."""
