import { useStore } from '../context.ts'
import type { Store } from '../store.ts'
import { TEXTS } from '../texts.ts'
import { Button } from './button.tsx'

/** Copies a text. Says so if there is no clipboard (a page over plain HTTP from elsewhere). */
export async function copyText(text: string, notice: Store['notice']) {
  try {
    await navigator.clipboard.writeText(text)
    notice.value = { text: TEXTS.copied, isError: false }
  } catch {
    notice.value = { text: TEXTS.copyFailed, isError: true }
  }
}

/** A command or link, with a button that copies it. */
export function Copyable({ label, text }: { readonly label: string; readonly text: string }) {
  const { notice } = useStore()
  return (
    <div class="copyable">
      <span class="label">{label}</span>
      <code>{text}</code>
      <Button text={TEXTS.copy} label={`${TEXTS.copy}: ${label}`} does={() => copyText(text, notice)} />
    </div>
  )
}
