import { Argument, type Command } from 'commander'
import { exampleText, lazy } from '../command.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
const actions = lazy(() => import('./completion.actions.ts'))

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
    .action(actions.completion)
}
