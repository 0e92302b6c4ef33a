import { useEffect } from 'preact/hooks'
import type { Change } from '../client.ts'
import facts from '../members.json' with { type: 'json' }
import { store } from '../state.ts'
import { t } from '../text.ts'
import { Ask, type AskProps, Dialog } from './form.tsx'
import { Copy } from './page.tsx'

/** What only the screens of accounts say: lists, and what states and reasons mean. */
export const { lists: LISTS, advice: ADVICE, vetting: VETTING, waits: WAITS } = facts
/** What holds if a check of a sale passes, and what a figure of a suspension's preview is. */
export const {
  checks: CHECKS,
  effects: EFFECTS,
}: Record<'checks' | 'effects', Record<string, string>> = facts

const ACTIONS: Record<string, AskProps & { text?: string }> = facts.actions

/** A button for this call with the given part of its input; `done` takes its answer. */
export function ask<Input, Result>(
  name: keyof typeof facts.actions,
  call: (input: Input) => Promise<Result>,
  given?: NoInfer<Partial<Input>> | Record<string, never>,
  done?: (answer: NoInfer<Result>) => unknown,
): AskProps & Change {
  const { label = '', text, ...known } = ACTIONS[name] ?? {}
  const finish = (answer: unknown) => done?.(answer as Result)
  return { ...known, label: t(label), text: text && t(text), call, given, done: finish }
}

/** What can be done with a resource. */
export function Asks({ items }: { items: (AskProps | false)[] }) {
  return <div class="actions">{items.map((ask) => ask && <Ask key={ask.label} {...ask} />)}</div>
}

const secret = store({ title: '', text: '' })

/** Shows what the service tells only once. */
export const reveal = (title: string, text: string) => secret.set({ title, text })

/** In the screens that reveal something. */
export function Revealed() {
  const { title, text } = secret.use()
  const close = () => reveal('', '')
  useEffect(() => close, [])
  if (!text) return null
  return (
    <Dialog title={title} onClose={close}>
      <p>{t('It is shown only now.')}</p>
      <code dir="ltr">{text}</code>
      <Copy text={text} label={title} />
    </Dialog>
  )
}
