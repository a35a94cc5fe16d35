"""The five papers' mechanisms as they print them, their baselines and measures. NOT FOR RELEASE."""
