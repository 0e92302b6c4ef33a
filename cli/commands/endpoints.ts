import type { Command } from 'commander'
import { addGroup, addPageOptions, EXAMPLE_ID, exampleText, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./endpoints.actions.ts'))

export function addEndpointCommands(program: Command): void {
  const group = addGroup(program, 'endpoints', "users' webhook endpoints: look at them, send again, disable")
  addPageOptions(
    group
      .command('list')
      .description('the newest webhook endpoints, and which of them fail')
      .option('--user <user>', 'of one user, by id or e-mail'),
  )
    .addHelpText('after', exampleText('endpoints list --user shop@example.com'))
    .action(actions.list)
  group
    .command('show')
    .description('one webhook endpoint and its newest deliveries')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .addHelpText('after', exampleText(`endpoints show ${EXAMPLE_ID}`))
    .action(actions.show)
  group
    .command('replay')
    .description('send events again, also those that the endpoint was never sent; event ids stay')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .option('--since <time>', 'from this time on; the last 30 days unless given')
    .addHelpText(
      'after',
      '\nThe events sale.accepted, sale.rejected and balance.released are kept only for\naccounts that had an enabled endpoint for them at the time. Read earlier sales\nfrom the API.',
    )
    .addHelpText('after', exampleText(`endpoints replay ${EXAMPLE_ID} --since 2026-11-20`))
    .action(actions.replay)
  group
    .command('disable')
    .description('stop all deliveries to an endpoint; its owner cannot enable it again')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .option('--reason <text>', 'kept in the audit trail')
<<<<<<< HEAD
    .addHelpText('after', exampleText(`endpoints disable ${EXAMPLE} --reason 'reported as abuse' --yes`))
    .action((endpoint: string, options: { reason?: string }, command: Command) =>
      disable(endpoint, options, command),
    )
}

function list(options: PageOptions & { user?: string }, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listEndpoints } = await import('../../server/webhooks/endpoints.service.ts')
      const { findUser } = await import('../../server/users/users.service.ts')
      const user = options.user === undefined ? null : await findUser(app.platform, options.user)
      const { items, next_cursor } = await listEndpoints(app.platform, user?.id ?? null, options)
      const person = await peopleOf(
        app,
        items.map((endpoint) => endpoint.account_id),
      )
      const wire = await Promise.all(
        items.map((endpoint) => wireOperatorEndpoint(endpoint, person(endpoint.account_id))),
      )
      out.showPage({ items: wire, next_cursor }, () =>
        out.table(
          [
            { title: 'Host', flexible: true },
            { title: 'User', flexible: true },
            { title: 'State' },
            { title: 'Since', optional: true },
            { title: 'Id' },
          ],
          items.map((endpoint) => [
            new URL(endpoint.url).host,
            nameOf(person(endpoint.account_id)),
            stateText(endpoint),
            out.shortTime(endpoint.disabled_at ?? endpoint.failing_since ?? endpoint.created_at),
            endpoint.id,
          ]),
        ),
      )
    },
    READS,
  )
}

function stateText({ disabled_reason: reason, failing_since: failingSince }: ShownEndpoint): string {
  if (reason !== null) return `disabled: ${reason}`
  return failingSince === null ? 'enabled' : 'failing'
}

/** Without path and query of the address, which can hold a secret of the owner. */
async function wireOperatorEndpoint(endpoint: ShownEndpoint, user: Person) {
  const { wireEndpoint } = await import('../../server/webhooks/webhooks-wire.ts')
  const { url, ...wire } = wireEndpoint(endpoint)
  return { ...wire, origin: new URL(url).origin, user }
}

function show(endpoint: string, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { readId } = await import('../arguments.ts')
      const { findEndpoint } = await import('../../server/webhooks/endpoints.service.ts')
      const { deliveryOverview } = await import('../../server/webhooks/deliveries.service.ts')
      const { attemptsOf } = await import('../../server/webhooks/delivery-log.ts')
      const { wireDelivery } = await import('../../server/webhooks/webhooks-wire.ts')
      const found = await findEndpoint(app.platform, readId('endpoint', endpoint))
      const { counts, newest } = await deliveryOverview(app.platform, found.id, NEWEST)
      const user = (await peopleOf(app, [found.account_id]))(found.account_id)
      const wire = await wireOperatorEndpoint(found, user)
      const problem = newest.find((delivery) => delivery.error !== null && attemptsOf(delivery).length > 0)
      out.show({ ...wire, counts, deliveries: newest.map(wireDelivery) }, () => [
        `${wire.origin} of ${nameOf(user)}: ${stateText(found)}`,
        `Events: ${wire.events.join(', ')}`,
        `Deliveries of the last 30 days: ${counts.delivered} delivered, ${counts.pending} pending, ${counts.failed} failed`,
        ...(newest.length === 0 ? [] : ['', ...deliveryTable(out, newest)]),
        ...(problem ? ['', ...attemptTable(out, problem.event_id, attemptsOf(problem))] : []),
      ])
    },
    READS,
  )
}

function deliveryTable(out: Output, deliveries: readonly ShownDelivery[]): string[] {
  return out.table(
    [
      { title: 'Event', flexible: true },
      { title: 'State' },
      { title: 'Attempts', right: true },
      { title: 'Status', right: true },
      { title: 'Queued' },
      { title: 'Problem', flexible: true },
    ],
    deliveries.map((delivery) => [
      delivery.eventType,
      delivery.state,
      String(delivery.attempts),
      delivery.response_status === null ? '–' : String(delivery.response_status),
      out.shortTime(delivery.created_at),
      delivery.error ?? '–',
    ]),
  )
}

function attemptTable(out: Output, eventId: string, attempts: readonly DeliveryAttempt[]): string[] {
  return [
    `Attempts at the newest delivery with a problem, event ${eventId}:`,
    ...out.table(
      [
        { title: 'Ended' },
        { title: 'Status', right: true },
        { title: 'Took', right: true },
        { title: 'Problem', flexible: true },
      ],
      attempts.map(({ at, status, durationMs, error }) => [
        out.shortTime(at),
        status === null ? '–' : String(status),
        `${durationMs} ms`,
        error ?? '–',
      ]),
    ),
  ]
}

async function replay(endpoint: string, options: { since?: string }, command: Command): Promise<void> {
  const { readId, readMoment } = await import('../arguments.ts')
  const endpointId = readId('endpoint', endpoint)
  await withApp(command, async (context) => {
    const { app, out, config } = context
    const { findEndpoint } = await import('../../server/webhooks/endpoints.service.ts')
    const { replayEvents } = await import('../../server/webhooks/deliveries.service.ts')
    const { OPERATOR } = await import('../../server/flags/audit.service.ts')
    const since = options.since === undefined ? 0 : await readMoment(options.since, config.BILLING_TIMEZONE)
    const { url } = await findEndpoint(app.platform, endpointId)
    await confirmFor(context, url, 'Send events again to')
    const { events } = await replayEvents(app.platform, endpointId, { since, actor: OPERATOR })
    out.show({ endpoint_id: endpointId, events }, () => [
      `${events} ${events === 1 ? 'event is' : 'events are'} due for ${new URL(url).origin}.`,
    ])
  })
}

async function disable(endpoint: string, options: { reason?: string }, command: Command): Promise<void> {
  const { readId, readText } = await import('../arguments.ts')
  const endpointId = readId('endpoint', endpoint)
  const note = options.reason === undefined ? null : await readText('--reason', options.reason, 2000)
  await withApp(command, async (context) => {
    const { app, out } = context
    const { disableByOperator, findEndpoint } = await import('../../server/webhooks/endpoints.service.ts')
    const { OPERATOR } = await import('../../server/flags/audit.service.ts')
    const { url } = await findEndpoint(app.platform, endpointId)
    await confirmFor(context, url, 'Disable')
    const { endpoint: disabled, changed } = await disableByOperator(app.platform, endpointId, {
      actor: OPERATOR,
      note,
    })
    const user = (await peopleOf(app, [disabled.account_id]))(disabled.account_id)
    const wire = await wireOperatorEndpoint(disabled, user)
    out.show(wire, () => [
      changed
        ? `Disabled ${wire.origin} of ${nameOf(user)}. Pending deliveries failed.`
        : `${wire.origin} of ${nameOf(user)} is ${stateText(disabled)} already.`,
    ])
  })
}

function confirmFor(context: CommandContext, url: string, action: string): Promise<void> {
  return confirm(context, `${action} ${new URL(url).origin}?`)
=======
    .addHelpText('after', exampleText(`endpoints disable $EXAMPLE_ID--reason 'reported as abuse' --yes`))
    .action(actions.disable)
>>>>>>> main
}
