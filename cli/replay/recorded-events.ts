import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { fillFixture } from '../../fixtures/fill-fixture.ts'
import { bodyToSend, findEventsNamed } from '../../server/inbox/events.service.ts'
import { resolveLink } from '../../server/links/links.service.ts'
import { MalformedOrder } from '../../server/shopify/fields.ts'
import { readOrderFacts } from '../../server/shopify/order-facts.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { signAsProcessor } from './processor-events.ts'
import type { Session, SignedEvent } from './session.ts'
import { clickValues, sendingStore, signAsStore } from './store-events.ts'

/** What the service takes at most. */
const MOST_BYTES = 2 * 1024 * 1024

/** An event out of the inbox, as its sender would send it once more. */
export async function prepareRecorded(session: Session, eventId: string): Promise<SignedEvent> {
  const { app, options } = session
  const [event] = await findEventsNamed(app.platform, eventId)
  if (!event) {
    throw new Failure(`There is no event ${eventId}. See "affiliate webhooks events".`, { code: 'not_found' })
  }
  const body = await bodyToSend(app.platform, event)
  if (!body) throw new Failure('The body of this event is past the retention time.', { code: 'conflict' })
  const named = { fixture: event.id, expected: null }
  if (event.source === 'processor') return signAsProcessor(session, named, body)
  const sender = await sendingStore(app, { store: options.store ?? event.scope })
  const pointed = await pointAtLink(session, body)
  return signAsStore(session, sender, { ...named, topic: event.topic }, pointed)
}

/** A file, or stdin, as a store or the processor would send it. */
export async function prepareFile(session: Session, file: string): Promise<SignedEvent> {
  const { app, options } = session
  const body = await readBody(file)
  const named = { fixture: file === '-' ? 'stdin' : file, expected: null }
  if (options.as === 'processor') return signAsProcessor(session, named, body)
  const sender = await sendingStore(app, options)
  return signAsStore(session, sender, named, await pointAtLink(session, body))
}

async function readBody(file: string): Promise<Buffer> {
  const unreadable = ({ code }: NodeJS.ErrnoException) => {
    throw new Failure(`cannot read ${file}: ${code}`, { code: 'not_found' })
  }
  const body = file === '-' ? await buffer(process.stdin) : await readFile(file).catch(unreadable)
  if (body.length === 0) throw wrongUsage('The body is empty.')
  if (body.length > MOST_BYTES) throw wrongUsage(`The body has ${body.length} bytes, ${MOST_BYTES} at most.`)
  return body
}

/**
 * Follows the link that was named, and puts its click where the body has another, or a fixture's placeholders. In the text,
 * since a body that was parsed and written again may have other numbers.
 */
async function pointAtLink(session: Session, body: Buffer): Promise<Buffer> {
  const { link } = session.options
  const text = body.toString('utf8')
  const placeholders = text.includes('{{')
  if (link === undefined) {
    if (placeholders) throw wrongUsage('The body has placeholders: name an affiliate link with --link SLUG.')
    return body
  }
  const { platform } = session.app
  const reference = placeholders ? null : referenceIn(text, platform.config.TRACKING_PARAMETER)
  const values = await clickValues(session, await resolveLink(platform, link))
  if (reference === null) return Buffer.from(fillFixture(text, { ...values, notAfter: platform.clock.now() }))
  return Buffer.from(text.replaceAll(JSON.stringify(reference).slice(1, -1), values.click))
}

function referenceIn(text: string, parameter: string): string {
  try {
    const [first] = readOrderFacts(text, parameter).references
    if (first) return first.reference
  } catch (error) {
    if (!(error instanceof MalformedOrder)) throw error
  }
  throw new Failure(`The body holds no ${parameter} that could be pointed at the link.`)
}
