import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Store } from './store.ts'

const PageContext = createContext<Store | undefined>(undefined)
export const StoreProvider = PageContext.Provider

/** What the page knows. */
export function useStore(): Store {
  const store = useContext(PageContext)
  if (store === undefined) throw new Error('this component needs a store around it')
  return store
}
