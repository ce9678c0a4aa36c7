interface ButtonProps {
  readonly text: string
  readonly does: () => unknown
  readonly look?: 'main' | 'danger' | 'link' | undefined
  readonly isOff?: boolean
  /** The accessible name, where the text is not enough. */
  readonly label?: string
}

export const Button = ({ text, does, look, isOff, label }: ButtonProps) => (
  <button type="button" class={look} disabled={isOff} aria-label={label} onClick={() => void does()}>
    {text}
  </button>
)
