// @ts-check
// A real Chromium for the tests, and a page that notes everything it should not do.

import { chromium } from 'playwright-core';

const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

/** @returns {Promise<import('playwright-core').Browser>} */
export function launch() {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    headless: true,
    args: FLAGS,
  });
}

/**
 * A page that collects console errors, uncaught errors and CSP reports.
 * @param {import('playwright-core').Browser} browser
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
export async function openPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  /** @type {string[]} */
  const faults = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
  });
  return { context, page, faults };
}

/**
 * @param {import('playwright-core').Page} page
 * @param {string} address
 * @param {string} [name]
 */
export async function signIn(page, address, name = 'Ada') {
  await page.goto(address);
  await page.getByLabel('Your name').fill(name);
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByText('Connected').waitFor();
}
