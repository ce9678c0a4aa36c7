import type { ComponentChildren } from 'preact'

/** What a view says that has nothing to show, and what to do then. */
export function Empty(props: {
  readonly title: string
  readonly text?: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <h2>{props.title}</h2>
      {props.text !== undefined && <p class="hint">{props.text}</p>}
      {props.children}
    </div>
  )
}
