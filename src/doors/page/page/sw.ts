import { NEWS } from './texts.ts'

/** Shows the notifications of codemachine while its page is closed; it keeps nothing, and answers no request of the page. */
const worker = self as unknown as {
  addEventListener(type: string, listener: (event: never) => void): void
  registration: { showNotification(title: string, options: object): Promise<void> }
  clients: {
    matchAll(
      options: object,
    ): Promise<readonly { url: string; focus(): Promise<unknown>; navigate(url: string): Promise<unknown> }[]>
    openWindow(url: string): Promise<unknown>
  }
  skipWaiting(): Promise<void>
}

interface Pushed {
  data: { json(): { kind?: string; path?: string } } | null
  waitUntil(done: Promise<unknown>): void
}

interface Tapped {
  notification: { data: { path: string }; close(): void }
  waitUntil(done: Promise<unknown>): void
}

worker.addEventListener('install', () => void worker.skipWaiting())
worker.addEventListener('push', (event: Pushed) => {
  const { kind = '', path = '#/' } = event.data?.json() ?? {}
  const options = { body: NEWS[kind] ?? NEWS['needs-person'], tag: path, icon: '/icon.svg', data: { path } }
  event.waitUntil(worker.registration.showNotification('codemachine', options))
})
worker.addEventListener('notificationclick', (event: Tapped) => {
  event.notification.close()
  const { path } = event.notification.data
  event.waitUntil(open(path.startsWith('#/') ? `/${path}` : '/'))
})

/** In the page that is open, or in a new one. */
async function open(path: string): Promise<void> {
  const [page] = await worker.clients.matchAll({ type: 'window' })
  if (page === undefined) await worker.clients.openWindow(path)
  else {
    await page.navigate(path)
    await page.focus()
  }
}
