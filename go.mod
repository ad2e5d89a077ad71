module github.com/watermill-inbox/inbox

go 1.25.0
