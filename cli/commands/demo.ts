import type { Command } from 'commander'
import { exampleText, lazy, oneOf } from '../command.ts'
import type { DemoProcessorName } from '../demo/demo-processor.ts'

const actions = lazy(() => import('./demo.actions.ts'))

const PROCESSORS: readonly DemoProcessorName[] = ['sandbox', 'safepay-raast']

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('show the whole chain at work on a server of its own: from a store’s order to a paid payout')
    .option(
      '--processor <name>',
      'sandbox, or safepay-raast: a double of Safepay on this machine, by the SAFEPAY_* settings of the environment',
      oneOf(PROCESSORS),
      'sandbox',
    )
    .option('--keep', 'leave the server running, and print its addresses and credentials')
    .addHelpText(
      'after',
      `
Starts the real server on free ports over a temporary database, acts as merchant, creators, visitors and store, and
ends with statements that add up by hand. Exit code 0 means that every check passed. Leaves nothing
behind unless --keep is given.

--processor safepay-raast needs a double of Safepay on this machine: see "Try it" in the guide "safepay". Nothing is
sent to Safepay itself.
${exampleText('demo', 'demo --keep', 'demo --processor safepay-raast', 'demo --json')}`,
    )
    .action(actions.demo)
}
