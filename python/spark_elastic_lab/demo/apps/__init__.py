"""Plain PySpark applications, which import nothing of this project."""
