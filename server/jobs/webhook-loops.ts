import { mailChannel } from '../notifications/channels/mail/mail-channel.service.ts'
import { deliverUntilIdle, WebhookDeliverer } from '../notifications/channels/webhooks/deliver.service.ts'
import {
  DELIVERY_SIGNAL,
  removeOldDeliveries,
  webhookChannel,
} from '../notifications/channels/webhooks/deliveries.service.ts'
import {
  type Channel,
  distributeEvents,
  OUTBOX_SIGNAL,
  removeOldEvents,
} from '../notifications/outbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { Loop } from './loop.ts'

/** The ways in which accounts are notified of events. */
export const CHANNELS: readonly Channel[] = [webhookChannel, mailChannel]

/** Starts giving events to their channels, and sending webhooks. */
export function startWebhookLoops(platform: Platform): { stop(): Promise<void> } {
  const deliverer = new WebhookDeliverer(platform)
  const loops = [
    new Loop(platform, {
      name: 'outbox',
      signals: [OUTBOX_SIGNAL],
      run: () => distributeEvents(platform, CHANNELS),
    }),
    new Loop(platform, {
      name: 'webhook deliveries',
      signals: [DELIVERY_SIGNAL],
      run: () => deliverer.start(),
      nextDueAt: () => deliverer.nextDueAt(),
    }),
  ]
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
      await deliverer.stop()
    },
  }
}

/** Distributes all events and makes all due deliveries: for tests and commands. Returns how many there were. */
export async function notifyUntilIdle(platform: Platform): Promise<number> {
  const deliverer = new WebhookDeliverer(platform)
  let done = 0
  try {
    for (;;) {
      const some = (await distributeEvents(platform, CHANNELS)) + (await deliverUntilIdle(deliverer))
      if (some === 0) return done
      done += some
    }
  } finally {
    await deliverer.stop()
  }
}

/** Removes events and deliveries that are past their retention. */
export async function removeOldNotifications(platform: Platform): Promise<void> {
  await removeOldDeliveries(platform)
  await removeOldEvents(platform)
}
