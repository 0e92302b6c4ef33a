import type { Command } from 'commander'
import { decideFlag } from '../../server/billing/credit-requests.service.ts'
import { OPERATOR } from '../../server/flags/audit.service.ts'
import { type FlagRow, listFlags, wireFlag } from '../../server/flags/flags.service.ts'
import { didYouMean } from '../../server/platform/nearest-word.ts'
import { flagKind } from '../../shared/schemas/admin.ts'
import type { PageOptions } from '../command.ts'
import { reads, writes } from '../context.ts'
import { wrongUsage } from '../failures.ts'
import { type WalkFilter, walkFlags } from './flag-review.ts'

export async function walkUnlessMistyped(_options: object, command: Command): Promise<void> {
  const [word] = command.args
  if (word === undefined) return walk({}, command)
  const names = command.commands.map((one) => one.name())
  throw wrongUsage(`unknown command '${word}'.${didYouMean(word, names)}`)
}

type ListOptions = PageOptions & WalkFilter & { status: FlagRow['status']; subject?: string }

export const list = reads(async ({ platform, out }, options: ListOptions) => {
  assertKind(options)
  const { subject: subjectId } = options
  out.showPage(await listFlags(platform, { ...options, subjectId }), {
    columns: [
      { title: 'Id', cell: (flag) => flag.id },
      { title: 'Severity', cell: (flag) => flag.severity },
      {
        title: 'What',
        flexible: true,
        least: 30,
        cell: ({ summary, note }) => (note === null ? summary : `${summary} Resolved: ${note}`),
      },
      {
        title: 'About',
        flexible: true,
        least: 24,
        cell: (flag) => `${flag.subject_type} ${flag.subject_id}`,
      },
      out.moment('Since', (flag) => flag.created_at),
      { title: 'Kind', cell: (flag) => flag.kind },
    ],
    wire: wireFlag,
    none: `No ${options.status} flags.`,
  })
})

function assertKind({ kind }: WalkFilter): void {
  const kinds: readonly string[] = flagKind.options
  if (kind === undefined || kinds.includes(kind)) return
  throw wrongUsage(
    `There is no kind of flag "${kind}".${didYouMean(kind, kinds)} Known: ${kinds.join(', ')}.`,
  )
}

export const resolve = writes(async ({ platform, out }, flagId: string, { note }: { note: string }) => {
  const row = await decideFlag(platform, { flagId, note, actor: OPERATOR })
  out.show(wireFlag(row), () => [`${row.kind} is resolved: ${row.note}`])
})

export const walk = writes(async (context, options: WalkFilter) => {
  assertKind(options)
  if (context.out.json || !process.stdin.isTTY || !process.stdout.isTTY) {
    throw wrongUsage(
      'Interactive review needs a terminal. Use "affiliate flagged list" and "affiliate flagged resolve".',
    )
  }
  await walkFlags(context, options)
})
