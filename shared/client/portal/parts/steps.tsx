import type { ComponentChildren } from 'preact'
import { t } from '../text.ts'

export interface Step {
  title: string
  state: 'done' | 'current' | 'later'
  children?: ComponentChildren
}

const MARKS = { done: '✓', current: '', later: '' }

/** What is done and what comes next. Only the current step shows its content. */
export function Steps({ steps }: { steps: Step[] }) {
  return (
    <ol class="steps">
      {steps.map(({ title, state, children }) => (
        <li key={title} class={state} aria-current={state === 'current' ? 'step' : undefined}>
          <strong>
            {title} {state === 'done' && <span class="hidden">{t('Done')}</span>}
          </strong>
          <span class="mark" aria-hidden="true">
            {MARKS[state]}
          </span>
          {state === 'current' && children}
        </li>
      ))}
    </ol>
  )
}
