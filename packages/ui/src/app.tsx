import { render } from 'preact'
import { openBridge } from './bridge.ts'
import { Page } from './page.tsx'
import { createStore } from './store.ts'

const store = createStore(
  openBridge((path, init) => fetch(path, init)),
  new EventSource('events')
)
render(<Page store={store} />, document.getElementById('app')!)
