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

/** A group that another file has made. */
export function groupOf(program: Command, name: string): Command {
  const group = program.commands.find((command) => command.name() === name)
  if (!group) throw new Error(`there is no group ${name}`)
  return group
}

/** Of every command that does something, in full: `users list`. */
export function commandNames(command: Command, words: readonly string[] = []): string[] {
  if (command.commands.length === 0) return [words.join(' ')]
  return command.commands.flatMap((sub) => commandNames(sub, [...words, sub.name()]))
}

/** The text under a command's help that shows how it is used. */
export function exampleText(...examples: readonly string[]): string {
  return `\nExample${examples.length > 1 ? 's' : ''}:\n${examples.map((line) => `  $ affiliate ${line}`).join('\n')}`
}

/** Reads an option's value; `words` are all that there are, for completion in the shell. */
export interface WordParser {
  (text: string): string
  words: readonly string[]
}

/** For options that name one of a few words. */
export function oneOf(words: readonly string[]): WordParser {
  const parse = (text: string) => {
    if (words.includes(text)) return text
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }
  return Object.assign(parse, { words })
}

const MOST_ROWS = 1000
export const DEFAULT_ROWS = 50

/** `--limit`: how many rows a list shows. */
export function rowLimit(text: string): number {
  return wholeNumber(1, MOST_ROWS)(text)
}

/** For options that count something. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}
