import { Command, InvalidArgumentError, Option } from 'commander'
import { type Paisa, parseMoney } from '../shared/money.ts'
import { type BasisPoints, percentToBasisPoints } from '../shared/rates.ts'
import type { TextRule } from './arguments.ts'
import { wrongUsage } from './failures.ts'
import { wrapLine } from './terminal/table.ts'

/** The options that every command takes. */
export interface GlobalOptions {
  json?: boolean
  databaseUrl?: string
  yes?: boolean
  fullIds?: boolean
}

/** The environment of the service; `--database-url` stands for all database addresses. */
export function serviceEnvironment({ databaseUrl }: GlobalOptions): NodeJS.ProcessEnv {
  if (databaseUrl === undefined) return process.env
  const { DATABASE_DIRECT_URL: _direct, DATABASE_READ_URL: _read, ...rest } = process.env
  return { ...rest, DATABASE_URL: databaseUrl }
}

/** The actions of a module. It is loaded when one of them runs: `--help` must not wait for the libraries behind it. */
export function lazy<Actions extends object>(load: () => Promise<Actions>): Actions {
  return new Proxy({} as Actions, {
    get:
      (_, name) =>
      async (...args: unknown[]) => {
        const actions = (await load()) as Record<string | symbol, (...args: unknown[]) => Promise<void>>
        return actions[name]?.(...args)
      },
  })
}

/** A command, or a group of them such as `users`, with what ours declare alike. */
export class CliCommand extends Command {
  override createCommand(name?: string): CliCommand {
    return new CliCommand(name)
  }

  subcommand(name: string, description: string): CliCommand {
    return this.command(name).description(description)
  }

  /** An option that names one of the words that its description lists: `open, closed or charged`. */
  choice(flags: string, words: string, chosen?: string): this {
    return this.option(flags, words, oneOf(words.split(/, | or /)), chosen)
  }

  /** An option for text that others read, on one line or with line breaks. It is read before the action runs. */
  text(flags: string, description: string, rule: TextRule): this {
    const option = new Option(flags, description).makeOptionMandatory(rule.required ?? false)
    return this.addOption(option).hook('preAction', async (_program, command) => {
      const name = option.attributeName()
      const text: string | undefined = command.getOptionValue(name)
      if (text === undefined) return
      const { readText } = await import('./arguments.ts')
      command.setOptionValue(name, readText(`${option.long}`, text, rule))
    })
  }

  /** Refuses (exit 2) a use that can never be right, before the action runs. */
  demand(message: string, holds: (options: Record<string, unknown>, ...args: unknown[]) => unknown): this {
    return this.hook('preAction', (_program, command) => {
      if (!holds(command.opts(), ...command.processedArgs)) throw wrongUsage(message)
    })
  }

  /** The options of every list. */
  paged(): this {
    return this.option('--limit <n>', 'how many at most', wholeNumber(1, 1000), 50).option(
      '--cursor <text>',
      'the next page: next_cursor of the one before',
    )
  }

  /** The option of a screen with several lists. */
  viewed(): this {
    return this.option('--limit <n>', 'how many rows of each list at most', wholeNumber(1, 100), 3)
  }

  /** Text under the help: a line of more than 80 columns goes on in the next one. */
  remarks(text: string): this {
    return this.addHelpText('after', () => `\n${fitRemarks(text)}`)
  }

  /** Shows under the help how it is used. */
  examples(...lines: readonly string[]): this {
    const title = lines.length > 1 ? 'Examples' : 'Example'
    return this.remarks(`${title}:\n${lines.map((line) => `  $ affiliate ${line}`).join('\n')}`)
  }
}

/** Examples stay on one line each, to be copied. */
function fitRemarks(text: string): string {
  const paragraphs = text.replace(/(?<=^.{81,})\n *(?![\d$ \n])/gm, ' ').split('\n')
  const width = process.stdout.columns || 80
  return paragraphs.flatMap((line) => (line.startsWith('  $ ') ? [line] : wrapLine(line, width))).join('\n')
}

/** Of every command that does something, in full: `users list`. */
export function commandNames(command: Command, words: readonly string[] = []): string[] {
  if (command.commands.length === 0) return [words.join(' ')]
  return command.commands.flatMap((sub) => commandNames(sub, [...words, sub.name()]))
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

/** For options that count something. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** The options of lists, newest first, and what narrows them. */
export interface PageOptions {
  limit: number
  cursor?: string
  merchant?: string
  creator?: string
  offer?: string
}

/** What the audit trail keeps of a command. */
export interface ReasonOption {
  reason?: string | null
}

/** An id in commands' examples. */
export const EXAMPLE_ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a value may be the end of an id, as lists show it; see `resolveShortIds`. */
export function isIdTail(value: unknown): value is string {
  return typeof value === 'string' && /^\s*[0-9a-f][0-9a-f-]{4,33}[0-9a-f]\s*$/i.test(value)
}

/** For an argument that is one of our ids or the end of one, in any case. Refuses (exit 2) anything else. */
export function idOf(what: string): (text: string) => string {
  return (text) => {
    const id = text.trim().toLowerCase()
    if (ID.test(id) || isIdTail(id)) return id
    const article = /^[aeio]/.test(what) ? 'an' : 'a'
    throw wrongUsage(
      `"${text}" is not the id of ${article} ${what}: give one such as ${EXAMPLE_ID}, or its last six or more characters.`,
    )
  }
}

/** `1250` or `1250.50` → paisa. Refuses (exit 2) anything else, also more than two decimals. */
export function amount(text: string): Paisa {
  const parsed = parseMoney(text)
  if (parsed !== null && parsed > 0) return parsed
  throw wrongUsage(
    `"${text}" is not a valid amount: give rupees above zero with at most two decimals, such as 1250.50.`,
  )
}

/** For `option`: `12.5` → basis points. Refuses (exit 2) anything else. */
export function percentOf(option: string): (text: string) => BasisPoints {
  return (text) => {
    const rate = /^\d+(\.\d+)?$/.test(text.trim()) ? percentToBasisPoints(Number(text)) : null
    if (rate !== null && rate <= 10_000) return rate
    throw wrongUsage(`${option} must be a percentage from 0 to 100 with at most two decimals.`)
  }
}
