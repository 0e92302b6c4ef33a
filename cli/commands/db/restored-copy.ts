/** A copy that a backup is restored into. It has another name until it is whole and its books were verified. */
export interface RestoredCopy {
  /** The copy's final name, for people: a path, or the name of a database. */
  place: string
  /** DATABASE_URL of the unfinished copy. */
  draftUrl: string
  /** DATABASE_URL of the finished copy, without a password. */
  url: string
  /** Loads the backup. Throws a `Failure` when it is damaged or belongs to something else. */
  load(): Promise<void>
  /** Gives the copy its final name. */
  keep(): Promise<void>
  /** Removes the copy. Does nothing once it is kept. */
  discard(): Promise<void>
  /** How to put the copy in place of the present database, in order: shell commands that keep DATABASE_URL. */
  swapCommands(): string[]
}

/** A text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
