import { useState } from 'preact/hooks'
import { BridgeError } from '../bridge.ts'
import { useStore } from '../context.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.jobs

/** The hub's page in a message, where it asks for consent. */
const pageIn = (message: string): string | undefined => /https?:\/\/[^\s"]+[^\s".,;:)]/.exec(message)?.[0]

interface LoginProps {
  /** Why a login is needed; it may name the page with the terms. */
  readonly message: string
  /** Does again what was refused. */
  readonly onLogin: () => unknown
}

/** Stores a token, which the hub checks first. */
export function LoginForm({ message, onLogin }: LoginProps) {
  const { attempt, bridge } = useStore()
  const [token, setToken] = useState('')
  const [isTaken, setTaken] = useState(false)
  const page = pageIn(message)
  const login = async (): Promise<void> => {
    const account = await attempt(async () => {
      try {
        return await bridge.login(token.trim(), isTaken)
      } catch (error) {
        setTaken(error instanceof BridgeError && error.code === 'E_NAME_TAKEN')
        throw error
      }
    })
    if (account !== undefined) onLogin()
  }
  return (
    <form
      class="toolbar login"
      onSubmit={(event) => {
        event.preventDefault()
        void login()
      }}
    >
      {page !== undefined && (
        <a class="button" href={page} target="_blank" rel="noreferrer">
          {T.terms}
        </a>
      )}
      <label class="wide-field">
        {T.token}
        <input
          type="password"
          autocomplete="off"
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="main">
        {isTaken ? T.replaceToken : T.login}
      </button>
    </form>
  )
}
