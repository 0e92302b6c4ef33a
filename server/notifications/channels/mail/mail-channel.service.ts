import { offerTitles } from '../../../offers/offers.service.ts'
import { mailMode } from '../../../platform/config.ts'
import type { Channel } from '../../outbox.service.ts'
import { type NewMail, sendMail } from './mail.service.ts'
import { mailAbout } from './mails.ts'

/** Writes mails about events. */
export const mailChannel: Channel = {
  async enqueue(platform, tx, events) {
    if (mailMode(platform.config) === 'off') return
    const titleOf = async (id: string) => (await offerTitles(tx, [id])).get(id) ?? ''
    for (const event of events) {
      const content = await mailAbout(event, titleOf)
      if (!content) continue
      await sendMail(platform, tx, { ...content, userId: event.account_id, about: event.id } as NewMail)
    }
  },
}
