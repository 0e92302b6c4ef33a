import { useState } from 'preact/hooks'
import type { Inputs, Outputs } from '../../index.ts'
import { client, useList } from '../client.ts'
import { tell } from '../news.ts'
import { Dialog } from '../parts/dialog.tsx'
import { type Field, Filters, Form } from '../parts/form.tsx'
import { Empty, Page } from '../parts/page.tsx'
import { ListTable } from '../parts/table.tsx'
import { Facts, Status, Theirs, When } from '../parts/values.tsx'
import { useRoute } from '../router.tsx'
import { t } from '../text.ts'

type Flag = Outputs['admin']['listFlagged']['items'][number]
type Action = 'resolve' | 'approve' | 'reject' | 'suspend' | 'reinstate'

const ROWS = 50

/** The queue for people. Nothing here moves money. */
export function Flags() {
  const { query } = useRoute()
  const filters = Object.fromEntries(query) as NonNullable<Inputs['admin']['listFlagged']>
  const list = useList(`flags ${query}`, (cursor) =>
    client.admin.listFlagged.query({ ...filters, limit: ROWS, ...cursor }),
  )
  const [flag, setFlag] = useState<Flag | null>(null)
  const [isDeciding, setDeciding] = useState(false)
  return (
    <Page
      title={t('Flags')}
      lead={t('What the service put before a person.')}
      actions={
        <button type="button" onClick={() => setDeciding(true)}>
          {t('Suspend an account')}
        </button>
      }
    >
      <Filters
        fields={[
          select('status', t('Status'), [
            ['', t('Open')],
            ['resolved', t('Resolved')],
          ]),
          select('severity', t('Severity'), [
            ['', t('All')],
            ['high', t('High')],
            ['medium', t('Medium')],
            ['low', t('Low')],
          ]),
        ]}
      />
      <ListTable
        label={t('Flags')}
        list={list}
        empty={<Empty title={t('Nothing to look at.')} />}
        columns={[
          { head: t('Severity'), cell: ({ severity }) => <Status value={severity} /> },
          { head: t('What'), cell: ({ summary }) => <Theirs>{summary}</Theirs> },
          { head: t('Since'), cell: ({ created_at }) => <When at={created_at} /> },
          {
            head: t('Action'),
            cell: (row) => (
              <button type="button" onClick={() => setFlag(row)}>
                {t('Look')}
              </button>
            ),
          },
        ]}
      />
      {flag && <FlagDialog flag={flag} onClose={() => setFlag(null)} onDone={list.reload} />}
      {isDeciding && (
        <Dialog title={t('Suspend an account')} onClose={() => setDeciding(false)}>
          <p class="quiet">{t('Its sessions end, its links and offers stop. It can be reinstated.')}</p>
          <Decision actions={['suspend', 'reinstate']} onDone={() => setDeciding(false)} />
        </Dialog>
      )}
    </Page>
  )
}

const select = (name: string, label: string, options: Field['options']): Field => ({
  name,
  label,
  type: 'select',
  options: options ?? [],
})

function FlagDialog({ flag, onClose, onDone }: { flag: Flag; onClose(): void; onDone(): Promise<void> }) {
  const { kind, subject_type, subject_id, evidence, note, status } = flag
  const own: Action[] =
    kind === 'offer_vetting' ? ['approve', 'reject'] : subject_type === 'user' ? ['suspend', 'reinstate'] : []
  return (
    <Dialog title={flag.summary} onClose={onClose}>
      <Facts
        items={[
          [t('Kind'), <Status key="kind" value={kind} />],
          [subject_type, <bdi key="subject">{subject_id}</bdi>],
          ...Object.entries(evidence).map(([name, value]): [string, string] => [
            name.replaceAll('_', ' '),
            typeof value === 'string' ? value : JSON.stringify(value),
          ]),
          [t('Note'), note && <Theirs key="note">{note}</Theirs>],
        ]}
      />
      {status === 'open' && (
        <Decision
          actions={[...own, 'resolve']}
          flag={flag}
          onDone={() => {
            onClose()
            void onDone()
          }}
        />
      )}
    </Dialog>
  )
}

/** Asks what to do, and why, and does it. */
function Decision({ actions, flag, onDone }: { actions: Action[]; flag?: Flag; onDone(): void }) {
  const words: Record<Action, string> = {
    resolve: t('Resolve the flag'),
    approve: t('Approve the offer'),
    reject: t('Reject the offer'),
    suspend: t('Suspend the account'),
    reinstate: t('Reinstate the account'),
  }
  return (
    <Form<{ action: Action; id?: string; reason: string }>
      fields={[
        {
          ...select(
            'action',
            t('Decision'),
            actions.map((word) => [word, words[word]]),
          ),
          name: 'action',
        },
        ...(flag ? [] : [{ name: 'id' as const, label: t("The account's id") }]),
        { name: 'reason', label: t('Reason'), type: 'textarea', hint: t('For the audit trail.') },
      ]}
      submit={t('Do it')}
      onSubmit={async ({ action, id = flag?.subject_id ?? '', reason }) => {
        if (action === 'resolve') await client.admin.resolveFlag.mutate({ id: flag?.id ?? '', note: reason })
        else if (action === 'suspend') await client.admin.suspendUser.mutate({ id, reason })
        else if (action === 'reinstate') await client.admin.reinstateUser.mutate({ id, reason })
        else await client.admin.vetOffer.mutate({ id, decision: action, reason })
        tell(t('Done'))
        onDone()
      }}
    />
  )
}
