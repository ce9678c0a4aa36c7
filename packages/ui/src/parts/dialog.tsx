import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { TEXTS } from '../texts.ts'
import { NoticeBar } from './notice.tsx'

interface DialogProps {
  readonly title: string
  /** Takes a side of the window, from top to bottom. */
  readonly isSheet?: boolean
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** A modal dialog of the browser: it keeps the focus, closes on Escape, and gives the focus back. */
export function Dialog({ title, isSheet, onClose, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  /** Its place is left already, so that its end is nobody's wish. */
  const isGone = useRef(false)
  // before the next key arrives: it would go to what lies behind.
  useLayoutEffect(() => {
    const before = document.activeElement
    const dialog = ref.current
    dialog?.showModal()
    return () => {
      isGone.current = true
      // nothing behind an open dialog can take the focus.
      dialog?.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={ref} class={isSheet ? 'sheet' : ''} aria-labelledby={id} onClose={() => isGone.current || onClose()}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label={TEXTS.close} onClick={() => ref.current?.close()}>
          ×
        </button>
      </header>
      {children}
      <NoticeBar />
    </dialog>
  )
}
