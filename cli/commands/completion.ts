import { Argument, type Command } from 'commander'
import { exampleText, type GlobalOptions } from '../command.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print what makes a shell complete commands and options')
    .addArgument(new Argument('<shell>', SHELLS.join(', ')).choices(SHELLS))
    .addHelpText(
      'after',
      `
In ~/.bashrc   source <(affiliate completion bash)
In ~/.zshrc    source <(affiliate completion zsh)
For fish       affiliate completion fish > ~/.config/fish/completions/affiliate.fish
${exampleText('completion bash')}`,
    )
    .action((shell: Shell, _options: object, command: Command) => completion(shell, command))
}

async function completion(shell: Shell, command: Command): Promise<void> {
  const { wordTree } = await import('../completion/word-tree.ts')
  const nodes = wordTree(command.parent ?? command)
  const script = await WRITERS[shell](nodes)
  const { json = false } = command.optsWithGlobals<GlobalOptions>()
  const { printJson, printScript } = await import('../terminal/printable-text.ts')
  if (json) printJson({ shell, script })
  else printScript(script)
}

type Nodes = ReturnType<typeof import('../completion/word-tree.ts').wordTree>

const WRITERS: Record<Shell, (nodes: Nodes) => Promise<string>> = {
  bash: async (nodes) => (await import('../completion/bash.ts')).bashCompletion(nodes),
  zsh: async (nodes) => (await import('../completion/zsh.ts')).zshCompletion(nodes),
  fish: async (nodes) => (await import('../completion/fish.ts')).fishCompletion(nodes),
}
