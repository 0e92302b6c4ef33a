import { isMailEvent } from '../../../../shared/events.ts'
import type { UserWire } from '../../../../shared/schemas/users.ts'
import { offerTitles } from '../../../offers/offers.service.ts'
import { mailMode } from '../../../platform/config.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Channel, OutboxEventRow } from '../../outbox.service.ts'
import { EVENT_MAILS } from './event-mails.ts'
import { type NewMail, sendMail } from './mail.service.ts'
import type { MailContent } from './mail-facts.ts'

/** Writes mails about events. */
export const mailChannel: Channel = {
  async enqueue(platform, tx, events) {
    if (mailMode(platform.config) === 'off') return
    for (const event of events) {
      const content = await contentOf(tx, event)
      if (!content) continue
      await sendMail(platform, tx, { ...content, userId: event.account_id, about: event.id } as NewMail)
    }
  },
}

async function contentOf(tx: Tx, event: OutboxEventRow): Promise<MailContent | null> {
  const data: unknown = JSON.parse(event.data)
  switch (event.type) {
    case 'payout_destination.changed': {
      const { payout_destination: current, upcoming_payout_destination: upcoming } = data as UserWire
      const iban_last4 = (upcoming ?? current)?.iban_last4 ?? ''
      const effective = upcoming ? Date.parse(upcoming.effective_at) : event.created_at
      const facts = { at: event.created_at, iban_last4, effective_at: effective }
      return { kind: 'payout_destination_changed', facts }
    }
    case 'webhook_endpoint.disabled': {
      const { url, disabled_reason: reason } = data as { url: string; disabled_reason: string }
      return { kind: 'webhook_endpoint_disabled', facts: { at: event.created_at, url, reason } }
    }
    default: {
      if (!isMailEvent(event.type)) return null
      const { factsOf } = EVENT_MAILS[event.type] as { factsOf?: (...given: unknown[]) => unknown }
      const titleOf = async (id: string) => (await offerTitles(tx, [id])).get(id) ?? ''
      const facts = (await factsOf?.(data, event, titleOf)) ?? null
      return facts && ({ kind: event.type, facts } as MailContent)
    }
  }
}
