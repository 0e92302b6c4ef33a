/** The write-once place outside the database that SEAL_STORAGE names. */
export interface SealStorage {
  /** The text under a name; `null` when there is none. */
  read(name: string): Promise<string | null>
  /** Writes a text durably under a name that is not taken. Throws when it is taken by another text. */
  create(name: string, text: string): Promise<void>
  /** Whether the storage itself refuses to replace or delete what it holds; `null` when it does not say. */
  isWriteOnce(): Promise<boolean | null>
  close(): void
}

/** Another seal is stored under a seal's name: the database was rolled back, or somebody made other seals. */
export class SealConflict extends Error {
  constructor(name: string) {
    super(`the seal storage holds another seal as ${name}: run "affiliate ledger verify"`)
    this.name = 'SealConflict'
  }
}
