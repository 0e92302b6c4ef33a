/** One thing that had to come out exactly so, and how it came out. */
export interface Check {
  name: string
  expected: string
  found: string
  ok: boolean
}

/** What one step says: rows of cells for people, checks for the exit code. A step that is repeated starts a new one. */
export class StepReport {
  readonly rows: string[][] = []
  readonly checks: Check[] = []

  row(...cells: string[]): void {
    this.rows.push(cells)
  }

  /** Notes whether `found` is what it has to be; the demo goes on either way and fails in the end. */
  check(name: string, found: string | number, expected: string | number): void {
    this.checks.push({
      name,
      expected: String(expected),
      found: String(found),
      ok: String(found) === String(expected),
    })
  }
}
