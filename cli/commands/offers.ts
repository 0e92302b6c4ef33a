import type { Command } from 'commander'
import {
  addGroup,
  addPageOptions,
  EXAMPLE_ID,
  exampleText,
  idOf,
  lazy,
  oneOf,
  percentOf,
} from '../command.ts'

const actions = lazy(() => import('./offers.actions.ts'))

const STATUSES = ['draft', 'live', 'paused', 'ended']
const VETTINGS = ['not_required', 'pending', 'approved', 'rejected']

export function addOfferCommands(program: Command): void {
  const group = addGroup(program, 'offers', "merchants' offers: look at them, decide on high commissions")
  addPageOptions(
    group
      .command('list')
      .description('the newest offers, in every status')
      .option('--merchant <user>', 'of one merchant, by id or e-mail')
      .option('--status <status>', STATUSES.join(', '), oneOf(STATUSES))
      .option('--vetting <state>', VETTINGS.join(', '), oneOf(VETTINGS)),
  )
    .addHelpText('after', exampleText('offers list --vetting pending'))
    .action(actions.list)
  group
    .command('vet')
    .description('approve or reject an offer at its present commission rate')
    .argument('<offer>', 'its id', idOf('offer'))
    .option('--approve', 'holds for this rate and lower ones')
    .option('--reject', 'pauses a live offer; clicks made before still earn')
    .option('--reason <text>', 'kept in the audit trail')
    .option('--rate <percent>', 'refuse when the offer has another rate now', percentOf('--rate'))
    .addHelpText(
      'after',
      exampleText(`offers vet ${EXAMPLE_ID} --approve --rate 35 --reason 'end of season' --yes`),
    )
<<<<<<< HEAD
    .action((offer: string, options: VetOptions, command: Command) => vet(offer, options, command))
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listEveryOffer } = await import('../../server/offers/offers.service.ts')
      const { findUser } = await import('../../server/users/users.service.ts')
      const merchant = options.merchant === undefined ? null : await findUser(app.platform, options.merchant)
      const { items, next_cursor } = await readPage(options, (request) =>
        listEveryOffer(app.platform, {
          merchantId: merchant?.id ?? null,
          status: options.status ?? null,
          vetting: options.vetting ?? null,
          ...request,
        }),
      )
      out.showPage({ items: items.map(wireOffer), next_cursor }, () => offerTable(out, items))
    },
    READS,
  )
}

function offerTable(out: Output, offers: readonly ShownOffer[]): string[] {
  return out.table(
    [
      { title: 'Title', flexible: true },
      { title: 'Merchant', flexible: true },
      { title: 'Rate', right: true },
      { title: 'Status' },
      { title: 'Vetting' },
      { title: 'Made' },
      { title: 'Id' },
    ],
    offers.map((offer) => [
      offer.title,
      offer.merchant.display_name,
      `${offer.commission_rate / 100} %`,
      offer.status,
      offer.vetting,
      out.shortTime(offer.created_at),
      offer.id,
    ]),
  )
}

function wireOffer(offer: ShownOffer) {
  return {
    id: offer.id,
    merchant: offer.merchant,
    title: offer.title,
    product_url: offer.product_url,
    category: offer.category,
    niche: offer.niche,
    commission_rate: offer.commission_rate / 100,
    attribution_window_days: offer.attribution_window_days,
    product_ids: offer.product_ids,
    status: offer.status,
    vetting: offer.vetting,
    vetting_reason: offer.vetting_reason,
    created_at: wireTime(offer.created_at),
    updated_at: wireTime(offer.updated_at),
  }
}

async function vet(offer: string, options: VetOptions, command: Command): Promise<void> {
  const { readId, readPercent, readText } = await import('../arguments.ts')
  const offerId = readId('offer', offer)
  if (Boolean(options.approve) === Boolean(options.reject)) {
    throw wrongUsage('Pass --approve or --reject.')
  }
  const decision = options.approve ? 'approve' : 'reject'
  const commissionRate = options.rate === undefined ? undefined : await readPercent('--rate', options.rate)
  const reason = options.reason === undefined ? null : await readText('--reason', options.reason, 2000)
  await withApp(command, async (context) => {
    const { app, out } = context
    const { vetOffer } = await import('../../server/offers/offers.service.ts')
    const { offerNotFound, offerRecords } = await import('../../server/offers/offers.service.ts')
    const { OPERATOR } = await import('../../server/flags/audit.service.ts')
    const found = (await offerRecords(app.platform, app.database.reader, [offerId])).get(offerId)
    if (!found) throw offerNotFound()
    const rate = commissionRate ?? found.commission_rate
    await confirm(
      context,
      `${options.approve ? 'Approve' : 'Reject'} "${found.title}" at ${rate / 100} % commission?`,
    )
    const vetting = { offerId, actor: OPERATOR, decision, reason, commissionRate: rate } as const
    const vetted = await vetOffer(app.platform, vetting)
    out.show(wireOffer(vetted), () => [
      `"${vetted.title}" is ${vetted.vetting} at ${vetted.commission_rate / 100} %${vetted.status === 'paused' ? ', and paused' : ''}.`,
    ])
  })
=======
    .action(actions.vet)
>>>>>>> main
}
