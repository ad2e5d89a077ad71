// Package crash kills workers at each step of a delivery, on each database and
// broker, and settles accounts from outside. A worker is the test's own program,
// started again; it is killed by SIGKILL, by itself, when it comes to the step.
package crash
