import type { Command } from 'commander'
import type { GlobalOptions } from '../command.ts'
import { bashCompletion, fishCompletion, zshCompletion } from '../completion/scripts.ts'
import { wordTree } from '../completion/word-tree.ts'
import { printJson, printScript } from '../terminal/printable-text.ts'

const WRITERS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion }

export function completion(shell: keyof typeof WRITERS, _options: object, command: Command): void {
  const script = WRITERS[shell](wordTree(command.parent ?? command))
  if (command.optsWithGlobals<GlobalOptions>().json) printJson({ shell, script })
  else printScript(script)
}
