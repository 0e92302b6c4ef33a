import { closeSync, mkdirSync, openSync } from 'node:fs'

/** Makes a folder, and those above it, that nobody else may look into; one that is there stays as it is. */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
}

/**
 * Makes an empty file that nobody else may read, for a library that would make it by the process' umask; one that is there
 * stays as it is. What SQLite puts beside a database has the database's own mode.
 */
export function makePrivateFile(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
}
