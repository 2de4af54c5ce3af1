"""What was found, for people and for programs: text, JSON, JUnit and SARIF. Each file makes one of them."""
