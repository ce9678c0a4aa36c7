import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import type { Store } from './store.ts'

const PageContext = createContext<Store | undefined>(undefined)
export const StoreProvider = PageContext.Provider

export function useStore(): Store {
  const store = useContext(PageContext)
  if (store === undefined) throw new Error('this component needs a store around it')
  return store
}

/** The bridge's answer; asks again when `about` changes. A failure becomes a notice. */
export function useAnswer<T>(ask: () => Promise<T>, about: readonly unknown[], failed?: () => void): T | undefined {
  const { attempt } = useStore()
  const [answer, setAnswer] = useState<T>()
  useEffect(() => {
    void attempt(ask).then((found) => (found === undefined ? failed?.() : setAnswer(() => found)))
  }, about)
  return answer
}
