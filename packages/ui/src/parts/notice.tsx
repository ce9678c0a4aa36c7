import { useStore } from '../context.ts'
import { TEXTS } from '../texts.ts'

/** What just happened; a success disappears by itself. A modal dialog has its own: screen readers skip what is behind it. */
export function NoticeBar() {
  const { notice } = useStore()
  const { text = '', isError = false } = notice.value ?? {}
  const dismiss = (): void => {
    notice.value = undefined
  }
  return (
    <div class={text === '' ? 'notices unseen' : isError ? 'notices error' : 'notices'}>
      <div role="status">{isError ? '' : text}</div>
      <div role="alert">{isError ? text : ''}</div>
      {text !== '' && !isError && <span key={text} class="timer" onAnimationEnd={dismiss} />}
      {text !== '' && (
        <button type="button" class="quiet" aria-label={TEXTS.dismiss} onClick={dismiss}>
          ×
        </button>
      )}
    </div>
  )
}
