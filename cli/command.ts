import { type Command, InvalidArgumentError } from 'commander'

/** The options that every command takes. */
export interface GlobalOptions {
  json?: boolean
  databaseUrl?: string
  yes?: boolean
}

/** A group of commands, such as `users`. */
export function addGroup(program: Command, name: string, description: string): Command {
  return program.command(name).description(description)
}

/** The text under a command's help that shows how it is used. */
export function exampleText(...examples: readonly string[]): string {
  return `\nExample${examples.length > 1 ? 's' : ''}:\n${examples.map((line) => `  $ affiliate ${line}`).join('\n')}`
}

/** For options that name one of a few words. */
export function oneOf(words: readonly string[]): (text: string) => string {
  return (text) => {
    if (words.includes(text)) return text
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }
}

const MOST_ROWS = 1000
export const DEFAULT_ROWS = 50

/** `--limit`: how many rows a list shows. */
export function rowLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MOST_ROWS) return limit
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${MOST_ROWS}.`)
}
