"""The auditor: attack every claim, record every noise call, plant bugs and catch them. NOT PRIVATE."""
