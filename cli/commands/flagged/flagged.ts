import type { Command } from 'commander'
import type { FlagRow } from '../../../server/flags/flags.service.ts'
import { didYouMean } from '../../../server/platform/nearest-word.ts'
import { addGroup, exampleText, oneOf } from '../../command.ts'
import { READS, withApp } from '../../context.ts'
import { wrongUsage } from '../../failures.ts'
import { addPageOptions, type PageOptions } from '../../pages.ts'
import { flagTable, wireFlag } from './flag-report.ts'

interface ListOptions extends PageOptions {
  kind?: string
  severity?: FlagRow['severity']
  status: FlagRow['status']
}

interface WalkOptions {
  kind?: string
  severity?: FlagRow['severity']
}

const SEVERITIES = ['low', 'medium', 'high']

export function addFlagCommands(program: Command): void {
  const group = addGroup(program, 'flagged', 'what waits for a person: walk through it, list it, resolve it')
    .addHelpText('after', exampleText('flagged', 'flagged list --severity high'))
    // Alone it is the walk; a word that is no command is a slip of the pen.
    .allowExcessArguments()
    .action((_options: object, command: Command) => walkUnlessMistyped(command))
  addPageOptions(
    group
      .command('list')
      .description('the newest flags, by default the open ones')
      .option('--kind <kind>', 'of one kind, such as self_purchase')
      .option('--severity <severity>', SEVERITIES.join(', '), oneOf(SEVERITIES))
      .option('--status <status>', 'open or resolved', oneOf(['open', 'resolved']), 'open'),
  )
    .addHelpText(
      'after',
      exampleText('flagged list --severity high', 'flagged list --status resolved --json'),
    )
    .action((options: ListOptions, command: Command) => list(options, command))
  group
    .command('resolve')
    .description('take a flag off the queue, noting what was found and done')
    .argument('<flag>', 'its id')
    .requiredOption('--note <text>', 'what was found and done; kept in the audit trail')
    .addHelpText(
      'after',
      exampleText("flagged resolve 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e --note 'spoke to the creator'"),
    )
    .action((flag: string, options: { note: string }, command: Command) =>
      resolve(flag, options.note, command),
    )
  group
    .command('walk')
    .description('go through the open flags one by one at the terminal: look, resolve, suspend, vet or skip')
    .option('--kind <kind>', 'of one kind, such as offer_vetting')
    .option('--severity <severity>', SEVERITIES.join(', '), oneOf(SEVERITIES))
    .addHelpText('after', exampleText('flagged walk --kind offer_vetting'))
    .action((options: WalkOptions, command: Command) => walk(options, command))
}

async function walkUnlessMistyped(command: Command): Promise<void> {
  const [word] = command.args
  if (word !== undefined) {
    const names = command.commands.map((one) => one.name())
    throw wrongUsage(`unknown command '${word}'.${didYouMean(word, names)}`)
  }
  await walk({}, command)
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      await assertKind(options.kind)
      const { listFlags } = await import('../../../server/flags/flags.service.ts')
      const { items, next_cursor } = await listFlags(app.platform, options)
      out.showPage({ items: items.map(wireFlag), next_cursor }, () =>
        items.length > 0 ? flagTable(out, items) : [`No ${options.status} flags.`],
      )
    },
    READS,
  )
}

async function assertKind(kind: string | undefined): Promise<void> {
  if (kind === undefined) return
  const { FLAG_KINDS } = await import('../../../server/flags/flags.service.ts')
  const kinds = Object.keys(FLAG_KINDS)
  if (kinds.includes(kind)) return
  throw wrongUsage(
    `There is no kind of flag "${kind}".${didYouMean(kind, kinds)} Known: ${kinds.join(', ')}.`,
  )
}

async function resolve(flag: string, noteText: string, command: Command): Promise<void> {
  const { readId, readText } = await import('../../arguments.ts')
  const flagId = readId('flag', flag)
  const note = await readText('--note', noteText, 2000)
  await withApp(command, async ({ app, out }) => {
    const { resolveFlag } = await import('../../../server/flags/flags.service.ts')
    const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
    const row = await resolveFlag(app.platform, { flagId, note, actor: OPERATOR })
    out.show(wireFlag(row), () => [`${row.kind} is resolved: ${row.note}`])
  })
}

function walk(options: WalkOptions, command: Command): Promise<void> {
  return withApp(command, async (context) => {
    await assertKind(options.kind)
    if (context.out.json || !process.stdin.isTTY || !process.stdout.isTTY) {
      throw wrongUsage(
        'Interactive review needs a terminal. Use "affiliate flagged list" and "affiliate flagged resolve".',
      )
    }
    const { walkFlags } = await import('./flag-review.ts')
    await walkFlags(context, options)
  })
}
