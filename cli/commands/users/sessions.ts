import type { Command } from 'commander'
import type { SessionRecord } from '../../../server/users/sessions.service.ts'
import { addGroup, exampleText } from '../../command.ts'
import { confirm, READS, withApp } from '../../context.ts'
import { addPageOptions, type PageOptions } from '../../pages.ts'
import { wireTime } from '../../terminal/output.ts'

export function addSessionCommands(program: Command): void {
  const group = addGroup(program, 'sessions', 'where an account is logged in: list its sessions, end them')
  addPageOptions(
    group
      .command('list')
      .description("an account's open sessions, newest first")
      .argument('<user>', 'id or e-mail'),
  )
    .addHelpText('after', exampleText('sessions list creator@example.com'))
    .action((user: string, options: PageOptions, command: Command) => list(user, options, command))
  group
    .command('end')
    .description('log an account out: one of its sessions, or all')
    .argument('<user>', 'id or e-mail')
    .argument('[session]', 'id of the one to end; all unless given')
    .addHelpText('after', exampleText('sessions end creator@example.com --yes'))
    .action((user: string, session: string | undefined, _options: object, command: Command) =>
      end(user, session, command),
    )
}

function list(user: string, options: PageOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { findUser } = await import('../../../server/users/users.service.ts')
      const { listSessions } = await import('../../../server/users/sessions.service.ts')
      const { id } = await findUser(app.platform, user)
      const { items, next_cursor } = await listSessions(app.platform, id, options)
      out.showPage({ items: items.map(wireSession), next_cursor }, () =>
        out.table(
          [
            { title: 'Logged in' },
            { title: 'Last used' },
            { title: 'From' },
            { title: 'Program', flexible: true },
            { title: 'Expires', optional: true },
            { title: 'Id', optional: true },
          ],
          items.map((session) => [
            out.shortTime(session.createdAt),
            out.shortTime(session.lastUsedAt),
            session.addressPrefix ?? '–',
            session.agent ?? '–',
            out.shortTime(session.expiresAt),
            session.id,
          ]),
        ),
      )
    },
    READS,
  )
}

async function end(user: string, session: string | undefined, command: Command): Promise<void> {
  const { readId } = await import('../../arguments.ts')
  const sessionId = session === undefined ? undefined : readId('session', session)
  await withApp(command, async (context) => {
    const { app, out } = context
    const users = await import('../../../server/users/users.service.ts')
    const found = await users.findUser(app.platform, user)
    await confirm(
      context,
      sessionId === undefined
        ? `End all sessions of ${found.role} ${found.email}?`
        : `End session ${sessionId} of ${found.role} ${found.email}?`,
    )
    const ended = await users.endSessionsOf(app.platform, found.id, sessionId)
    out.show({ user_id: found.id, ended }, () => [
      `${found.email}: ${ended} ${ended === 1 ? 'session has' : 'sessions have'} ended.`,
    ])
  })
}

function wireSession(session: SessionRecord) {
  return {
    id: session.id,
    created_at: wireTime(session.createdAt),
    expires_at: wireTime(session.expiresAt),
    last_used_at: wireTime(session.lastUsedAt),
    address_prefix: session.addressPrefix,
    agent: session.agent,
  }
}
