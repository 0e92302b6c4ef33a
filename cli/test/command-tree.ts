import type { Command } from 'commander'

export interface Leaf {
  /** The words that name it: `users list`. */
  name: string
  command: Command
}

/** Every command that does something. */
export function leavesOf(command: Command, words: readonly string[] = []): Leaf[] {
  if (command.commands.length === 0) return [{ name: words.join(' '), command }]
  return command.commands.flatMap((sub) => leavesOf(sub, [...words, sub.name()]))
}

export function helpOf(command: Command): string {
  let help = ''
  command.configureOutput({
    writeOut: (text) => {
      help += text
    },
  })
  command.outputHelp()
  return help
}
