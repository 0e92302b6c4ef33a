import { type Books, type Row, TABLES } from '../oracle/books.ts'

/** The services did something else than the oracle says. */
export class Difference extends Error {
  readonly lines: string[]

  constructor(lines: string[]) {
    super(lines.join('\n'))
    this.name = 'Difference'
    this.lines = lines
  }
}

/** Throws unless what the services answered is what the oracle says. */
export function mustAgree(what: string, expected: unknown, found: unknown): void {
  if (expected !== found) throw new Difference([`${what}: the model says ${expected}, the services ${found}`])
}

/** Every row that differs, in words. */
export function differencesBetween(expected: Books, found: Books): string[] {
  return TABLES.flatMap((table) => {
    const keys = [...new Set([...expected[table].keys(), ...found[table].keys()])].sort()
    return keys.flatMap((key) =>
      rowDifference(`${table}: ${key}`, expected[table].get(key), found[table].get(key)),
    )
  })
}

function rowDifference(name: string, expected: Row | undefined, found: Row | undefined): string[] {
  if (!expected) return [`${name}: not expected by the model / found in the books: ${rowText(found)}`]
  if (!found) return [`${name}: expected by the model: ${rowText(expected)} / not found in the books`]
  return [...new Set([...Object.keys(expected), ...Object.keys(found)])]
    .filter((column) => expected[column] !== found[column])
    .map(
      (column) =>
        `${name}: ${column}: expected by the model: ${expected[column]} / found in the books: ${found[column]}`,
    )
}

function rowText(row: Row | undefined): string {
  return Object.entries(row ?? {})
    .map(([column, value]) => `${column} ${value}`)
    .join(', ')
}
