module github.com/watermill-inbox/inbox

go 1.25.0

require github.com/jmoiron/sqlx v1.4.0
