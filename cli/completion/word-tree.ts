import { type Command, Option } from 'commander'
import type { WordParser } from '../command.ts'

/** One place of the command line: the words typed so far, and what may come next. */
export interface WordNode {
  /** The words that lead here, without `affiliate`: `users list`. */
  path: string
  /** Commands that may follow. */
  commands: { name: string; description: string }[]
  options: WordOption[]
}

export interface WordOption {
  /** `--limit`; a short form is an option of its own. */
  flag: string
  description: string
  /** Whether a value follows. */
  takesValue: boolean
  /** All values that there are; empty where they are not a few words. */
  values: readonly string[]
  /** Whether the value names a file. */
  isFile: boolean
}

/** Walks the program, so that what a shell offers is what there is. */
export function wordTree(program: Command): WordNode[] {
  const shared = program.options.flatMap(optionsOf)
  const help = optionsOf(new Option('--help', 'display help for command'))
  const nodes = (command: Command, words: string[]): WordNode[] => [
    {
      path: words.join(' '),
      commands: command.commands.map((sub) => ({ name: sub.name(), description: sub.description() })),
      options: [...(command === program ? [] : command.options.flatMap(optionsOf)), ...shared, ...help],
    },
    ...command.commands.flatMap((sub) => nodes(sub, [...words, sub.name()])),
  ]
  return nodes(program, [])
}

function optionsOf(option: Option): WordOption[] {
  const values = (option.parseArg as Partial<WordParser> | undefined)?.words ?? []
  const rest = {
    description: option.description,
    takesValue: option.required || option.optional,
    values,
    isFile: /<file>/.test(option.flags),
  }
  return [option.long, option.short].flatMap((flag) => (flag ? [{ flag, ...rest }] : []))
}
