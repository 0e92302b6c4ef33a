import type { ComponentChildren } from 'preact'
import { t } from '../text.ts'

interface StepsProps {
  steps: [title: string, ...content: ComponentChildren[]][]
  /** The index of the current step, whose content is shown. */
  at: number
}

/** What is done and what comes next. */
export function Steps({ steps, at }: StepsProps) {
  return (
    <ol class="steps">
      {steps.map(([title, ...content], index) => (
        <li
          key={title}
          class={index < at ? 'done' : index === at ? 'current' : 'later'}
          aria-current={index === at ? 'step' : undefined}
        >
          <strong>
            {title} {index < at && <span class="hidden">{t('Done')}</span>}
          </strong>
          <span class="mark" aria-hidden="true">
            {index < at ? '✓' : index + 1}
          </span>
          {index === at && content.map((part) => <div>{part}</div>)}
        </li>
      ))}
    </ol>
  )
}
