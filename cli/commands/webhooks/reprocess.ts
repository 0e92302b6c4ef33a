import type { Command } from 'commander'
import { exampleText } from '../../command.ts'
import { assertMigrated, withDatabase } from '../../context.ts'
import { wrongUsage } from '../../failures.ts'

interface ReprocessCommandOptions {
  dryRun?: boolean
  since?: string
  store?: string
}

export function addReprocessCommand(group: Command): void {
  group
    .command('reprocess')
    .description(
      "decide the stored orders by today's rule and show what would differ, in money; changes nothing",
    )
    .option('--dry-run', 'must be given: books are never rewritten')
    .option('--since <time>', 'received since, RFC 3339, or a date: its midnight in BILLING_TIMEZONE')
    .option('--store <store>', 'of one store, by host name or id')
    .addHelpText(
      'after',
      exampleText(
        'webhooks reprocess --dry-run',
        'webhooks reprocess --dry-run --since 2026-11-01 --store my-shop.myshopify.com',
      ),
    )
    .action((options: ReprocessCommandOptions, command: Command) => reprocess(options, command))
}

/** Works from the database alone, and opens it for reading only. */
async function reprocess(options: ReprocessCommandOptions, command: Command): Promise<void> {
  if (!options.dryRun) {
    throw wrongUsage(
      'Books are never rewritten: add --dry-run to see what would differ. Correct a mistake by a credit ("affiliate billing credit").',
    )
  }
  await withDatabase(
    command,
    async ({ config, database, out }) => {
      await assertMigrated(database)
      const { readMoment } = await import('../../arguments.ts')
      const { reprocessOrders } = await import('../../../server/sales/reprocess.service.ts')
      const { readAppKeys } = await import('../../../server/platform/crypto/app-keys.ts')
      const { ReprocessOutput } = await import('./reprocess-output.ts')
      const since =
        options.since === undefined ? null : await readMoment(options.since, config.BILLING_TIMEZONE)
      const storeIds = options.store === undefined ? null : await storesMeant(database.reader, options.store)
      const output = new ReprocessOutput(out, database.reader)
      output.begin({ since, store: options.store ?? null })
      out.progress('deciding the stored events again')
      const report = await reprocessOrders(
        { config, database, keys: readAppKeys(config, { create: false }) },
        {
          since,
          storeIds,
          onDifference: (difference) => output.add(difference),
          onProgress: (done, all) => out.progress(`decided ${done} of ${all} events again`),
        },
      )
      out.endProgress()
      await output.end(report)
    },
    { readOnly: true },
  )
}

async function storesMeant(
  db: Parameters<typeof import('../../../server/stores/stores.service.ts').storeIdsOf>[0],
  store: string,
): Promise<string[]> {
  const { storeIdsOf } = await import('../../../server/stores/stores.service.ts')
  const { Refusal } = await import('../../../server/platform/api/refusal.ts')
  const ids = await storeIdsOf(db, store)
  if (ids.length === 0) throw new Refusal('not_found', `There is no store ${store}.`)
  return ids
}
