import { type AuditRow, listAudit, OPERATOR, wireAudit } from '../../server/flags/audit.service.ts'
import { isId } from '../../server/platform/ids.ts'
import { findUser } from '../../server/users/users.service.ts'
import { readMoment } from '../arguments.ts'
import type { PageOptions } from '../command.ts'
import { reads } from '../context.ts'
import { nameOf, peopleOf, userIdOf } from '../lists.ts'

type ListOptions = PageOptions & { actor?: string; subject?: string; since?: string }

export const list = reads(async ({ platform, out, config }, options: ListOptions) => {
  const { actor: by, subject, limit, cursor } = options
  const since = readMoment(options.since, config)
  const actor = by === OPERATOR ? OPERATOR : ((await userIdOf(platform, by)) ?? undefined)
  const subjectId = subject?.includes('@') ? (await findUser(platform, subject)).id : subject
  const page = await listAudit(platform, { actor, subjectId, since, limit, cursor })
  const person = await peopleOf(platform, page.items, (row) => [row.actor, subjectUser(row)].filter(isUser))
  const actorText = ({ actor: id }: AuditRow) => (isId(id) ? nameOf(person(id)) : id)
  const subjectText = (row: AuditRow) => {
    const id = subjectUser(row)
    return id === null ? `${row.subject_type} ${row.subject_id}` : nameOf(person(id))
  }
  out.showPage(page, {
    columns: [
      out.moment('Time', (row) => row.created_at),
      { title: 'Actor', flexible: true, cell: actorText },
      { title: 'Action', cell: (row) => row.action },
      { title: 'Subject', flexible: true, cell: subjectText },
      { title: 'Reason', flexible: true, cell: (row) => row.reason },
      { title: 'After', flexible: true, cell: (row) => row.after },
    ],
    wire: wireAudit,
    none: 'No audit entries.',
  })
})

/** The user that an entry is about; `null` when it is about something else. */
function subjectUser({ subject_type, subject_id }: AuditRow): string | null {
  return subject_type === 'user' && isId(subject_id) ? subject_id : null
}

function isUser(id: string | null): id is string {
  return id !== null && isId(id)
}
