import { listSessions } from '../../server/users/sessions.service.ts'
import { wireSession } from '../../server/users/user-wire.ts'
import { endSessionsOf, findUser } from '../../server/users/users.service.ts'
import type { PageOptions } from '../command.ts'
import { confirm, reads, writes } from '../context.ts'

export const list = reads(async ({ platform, out }, user: string, options: PageOptions) => {
  const { id } = await findUser(platform, user)
  out.showPage(await listSessions(platform, id, options), {
    columns: [
      { title: 'Id', cell: (session) => session.id },
      out.moment('Last used', (session) => session.last_used_at),
      { title: 'From', cell: (session) => session.address_prefix },
      { title: 'Program', flexible: true, cell: (session) => session.agent },
      out.moment('Logged in', (session) => session.created_at),
      out.moment('Expires', (session) => session.expires_at),
    ],
    wire: wireSession,
    none: 'No open sessions.',
  })
})

export const end = writes(async (context, user: string, sessionId: string | undefined) => {
  const { platform, out } = context
  const { id, role, email } = await findUser(platform, user)
  const which = sessionId === undefined ? 'all sessions' : `session ${sessionId}`
  await confirm(context, `End ${which} of ${role} ${email}?`)
  const ended = await endSessionsOf(platform, id, sessionId)
  out.show({ user_id: id, ended }, () => [
    `${email}: ${ended} ${ended === 1 ? 'session has' : 'sessions have'} ended.`,
  ])
})
