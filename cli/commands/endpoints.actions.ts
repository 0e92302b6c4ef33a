import { OPERATOR } from '../../server/flags/audit.service.ts'
import {
  deliveryOverview,
  replayEvents,
} from '../../server/notifications/channels/webhooks/deliveries.service.ts'
import {
  disableByOperator,
  getEndpoint,
  listEndpoints,
  type ShownEndpoint,
} from '../../server/notifications/channels/webhooks/endpoints.service.ts'
import {
  attemptsOf,
  wireDelivery,
  wireEndpoint,
} from '../../server/notifications/channels/webhooks/webhooks-wire.ts'
import { readMoment } from '../arguments.ts'
import type { PageOptions, ReasonOption } from '../command.ts'
import { confirm, reads, writes } from '../context.ts'
import { nameOf, type Person, peopleOf, personOf, userIdOf } from '../lists.ts'

/** Deliveries that `show` lists. */
const NEWEST = 10

export const list = reads(async ({ platform, out }, options: PageOptions & { user?: string }) => {
  const page = await listEndpoints(platform, await userIdOf(platform, options.user), options)
  const person = await peopleOf(platform, page.items, (endpoint) => endpoint.account_id)
  out.showPage(page, {
    columns: [
      { title: 'Id', cell: (endpoint) => endpoint.id },
      { title: 'Host', flexible: true, cell: (endpoint) => new URL(endpoint.url).host },
      { title: 'State', cell: stateText },
      { title: 'User', flexible: true, cell: (endpoint) => nameOf(person(endpoint.account_id)) },
      out.moment('Since', (one) => one.disabled_at ?? one.failing_since ?? one.created_at),
    ],
    none: 'No webhook endpoints.',
    wire: (endpoint) => wireOperatorEndpoint(endpoint, person(endpoint.account_id)),
  })
})

function stateText({ disabled_reason: reason, failing_since: failingSince }: ShownEndpoint): string {
  if (reason !== null) return `disabled: ${reason}`
  return failingSince === null ? 'enabled' : 'failing'
}

/** Without path and query of the address, which can hold a secret of the owner. */
function wireOperatorEndpoint(endpoint: ShownEndpoint, user: Person) {
  const { url, ...wire } = wireEndpoint(endpoint)
  return { ...wire, origin: new URL(url).origin, user }
}

export const show = reads(async ({ platform, out }, endpointId: string) => {
  const found = await getEndpoint(platform, null, endpointId)
  const { counts, newest } = await deliveryOverview(platform, found.id, NEWEST)
  const user = await personOf(platform, found.account_id)
  const wire = wireOperatorEndpoint(found, user)
  const deliveries = out.table(newest, [
    { title: 'Event', flexible: true, cell: (delivery) => delivery.event_type },
    { title: 'State', cell: (delivery) => delivery.state },
    { title: 'Attempts', right: true, cell: (delivery) => delivery.attempts },
    { title: 'Status', right: true, cell: (delivery) => delivery.response_status },
    { title: 'Problem', flexible: true, cell: (delivery) => delivery.error },
    out.moment('Queued', (delivery) => delivery.created_at),
  ])
  const problem = newest.find((delivery) => delivery.error !== null && attemptsOf(delivery).length > 0)
  const attempts = out.table(problem ? attemptsOf(problem) : [], [
    out.moment('Ended', ({ at }) => at),
    { title: 'Status', right: true, cell: ({ status }) => status },
    { title: 'Problem', flexible: true, cell: ({ error }) => error },
    { title: 'Took', right: true, cell: ({ durationMs }) => `${durationMs} ms` },
  ])
  out.show({ ...wire, counts, deliveries: newest.map(wireDelivery) }, () => [
    `${wire.origin} of ${nameOf(user)}: ${stateText(found)}`,
    `Events: ${wire.events.join(', ')}`,
    `Deliveries of the last 30 days: ${counts.delivered} delivered, ${counts.pending} pending, ${counts.failed} failed`,
    ...(newest.length === 0 ? [] : ['', ...deliveries]),
    ...(problem
      ? ['', `Attempts at the newest delivery with a problem, event ${problem.event_id}:`, ...attempts]
      : []),
  ])
})

export const replay = writes(async (context, endpointId: string, options: { since?: string }) => {
  const { platform, out, config } = context
  const since = readMoment(options.since, config) ?? 0
  const { origin } = new URL((await getEndpoint(platform, null, endpointId)).url)
  await confirm(context, `Send events again to ${origin}?`)
  const { events } = await replayEvents(platform, endpointId, { since, actor: OPERATOR })
  out.show({ endpoint_id: endpointId, events }, () => [
    `${events} ${events === 1 ? 'event is' : 'events are'} due for ${origin}.`,
  ])
})

export const disable = writes(async (context, endpointId: string, { reason: note = null }: ReasonOption) => {
  const { platform, out } = context
  const { origin } = new URL((await getEndpoint(platform, null, endpointId)).url)
  await confirm(context, `Disable ${origin}?`)
  const disabled = await disableByOperator(platform, endpointId, { actor: OPERATOR, note })
  const user = await personOf(platform, disabled.endpoint.account_id)
  out.show(wireOperatorEndpoint(disabled.endpoint, user), () => [
    disabled.changed
      ? `Disabled ${origin} of ${nameOf(user)}. Pending deliveries failed.`
      : `${origin} of ${nameOf(user)} is ${stateText(disabled.endpoint)} already.`,
  ])
})
