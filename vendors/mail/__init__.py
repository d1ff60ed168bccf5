"""Emails: their content, mail servers, and the inbox of development servers."""
