import type { ComponentChildren } from 'preact'
import { t } from '../text.ts'

interface StepsProps {
  steps: [title: string, ...content: ComponentChildren[]][]
  /** The index of the current step, whose content is shown. */
  at: number
  /** Shows the content of every step. */
  all?: boolean
}

/** What is done and what comes next. */
export function Steps({ steps, at, all }: StepsProps) {
  return (
    <ol class="steps">
      {steps.map(([title, ...content], index) => (
        <li
          key={`${index} ${title}`}
          class={index < at ? 'done' : index === at ? 'current' : 'later'}
          aria-current={index === at ? 'step' : undefined}
        >
          <strong>
            {title} {index < at && <span class="hidden">{t('Done')}</span>}
          </strong>
          <span class="mark" aria-hidden="true">
            {index < at ? '✓' : index + 1}
          </span>
          {(all || index === at) && content.map((part) => <div>{part}</div>)}
        </li>
      ))}
    </ol>
  )
}
