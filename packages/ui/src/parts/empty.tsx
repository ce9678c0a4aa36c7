import type { ComponentChildren } from 'preact'

/** In a view with nothing to show: why, and what to do. */
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
